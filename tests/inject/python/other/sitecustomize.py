print("the other one")
